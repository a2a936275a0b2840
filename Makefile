# Selinger's targets. `make help` lists them.

PYTHON ?= python3
LINE_FIELD = $(PYTHON) -c 'import json, sys; t = json.load(open("conf/spark-lines.json")); print($(1))'
LINES := $(shell $(call LINE_FIELD," ".join(t["lines"])))
SPARK ?= $(shell $(call LINE_FIELD,t["default"]))
SPARK_VERSION = $(shell $(call LINE_FIELD,t["lines"]["$*"]["spark"]))

VENV = .venv/$(SPARK)
PY = $(VENV)/bin/python
JAR = python/selinger/jars/selinger-spark-$(SPARK).jar
TEST_JAR = target/spark-$(SPARK)/selinger-tests.jar
SCALA_SOURCES = $(shell find src project build.sbt version.sbt conf/spark-lines.json -name '*.scala' -o -name '*.java' -o -name '*.sbt' -o -name '*.json' -o -name '*.properties' | grep -v target)

SBT_VERSION := $(shell sed -n 's/^sbt.version=//p' project/build.properties)
SBT_LAUNCH = .tools/sbt-launch-$(SBT_VERSION).jar
SBT_ON_PATH := $(shell command -v sbt 2>/dev/null)
SBT = $(if $(SBT_ON_PATH),sbt,java -Xmx1500m -jar $(SBT_LAUNCH)) -Dsbt.log.noformat=true -Dsbt.server.autostart=false
SBT_READY = $(if $(SBT_ON_PATH),,$(SBT_LAUNCH))

# Settings of the demo and the benchmarks: make bench SF=10 QUERIES=q01,q05 RUNS=3 PROFILES=stock,selinger LAYOUT=by-day
# PUBLISH=1 writes the figures to benchmarks/published and docs/benchmarks.md as well.
SF ?= 1
QUERIES ?= all
RUNS ?= 1
PROFILES ?= stock,selinger
SUITE ?= tpcds
LAYOUT ?= generated
MEMORY ?= 8g
ANALYZED ?=
JVMS ?= 0
PUBLISH ?=
PUBLISHING = $(if $(PUBLISH),--publish)

# Settings of the fuzzer: make fuzz N=10000 SEED=7, make fuzz SEED=7 CASE=123
N ?= 1000
SEED ?= 1
CASE ?=

# Of the tests in Python, the longest first.
PYTHON_PARTS = $(addprefix test-,package tpcds fuzz connect scale)

.DEFAULT_GOAL := help
.PHONY: help setup jar jars wheel publish-local demo test test-all test-scala test-python $(PYTHON_PARTS) test-delta fuzz lint format docs docs-benchmarks bench bench-aggregates bench-ablation bench-operators bench-plancost bench-walks bench-analyze bench-estimates bench-planning clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{printf "  make %-16s %s\n", $$1, $$2}'
	@echo "  SPARK=$(SPARK) chooses the Spark line; there are: $(LINES)"

setup: $(VENV)/.ready $(SBT_READY) ## install PySpark and the tools of a line into .venv/<line>

.venv/%/.ready: python/pyproject.toml conf/spark-lines.json
	@command -v java > /dev/null || { echo "No Java found: install a JDK, version 17 or later, and put it on the PATH."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "$(PYTHON) is too old: Python 3.10 or later is needed (make PYTHON=python3.11 …)."; exit 1; }
	test -x .venv/$*/bin/python || $(PYTHON) -m venv .venv/$*
	.venv/$*/bin/python -m pip install --quiet "pyspark[connect]==$(SPARK_VERSION)"
	.venv/$*/bin/python -m pip install --quiet -e "python[dev]"
	@touch $@

# Made on the way to the jars of the other lines: without this, make removes it afterwards.
.PRECIOUS: .venv/%/.ready

$(SBT_LAUNCH):
	@command -v java > /dev/null || { echo "No Java found: install a JDK, version 17 or later, and put it on the PATH."; exit 1; }
	@command -v mvn > /dev/null || { echo "Neither sbt nor Maven found: install one of them (sbt $(SBT_VERSION), or any Maven 3) and put it on the PATH."; exit 1; }
	mvn --quiet dependency:copy -Dartifact=org.scala-sbt:sbt-launch:$(SBT_VERSION) -DoutputDirectory=.tools

python/selinger/jars/selinger-spark-%.jar: $(SCALA_SOURCES) .venv/%/.ready $(SBT_READY)
	SPARK=$* $(SBT) package
	@touch $@

jar: $(JAR) ## build the jar of a line

jars: $(LINES:%=python/selinger/jars/selinger-spark-%.jar) ## build the jars of all lines

wheel: jars $(VENV)/.ready ## build the wheel with the jars of all lines, into python/dist
	rm -rf python/dist
	$(PY) -m build --wheel --no-isolation --outdir python/dist python

# M2=folder is another repository than ~/.m2/repository.
publish-local: $(LINES:%=publish-local-%) ## put the jars into the local Maven repository, for spark-submit --packages

publish-local-%: .venv/%/.ready $(SBT_READY)
	SPARK=$* $(SBT) $(if $(M2),-Dmaven.repo.local=$(M2)) publishM2

demo: $(JAR) $(VENV)/.ready ## TPC-DS with stock Spark and with Selinger: same answers? what changed, and why? SF, QUERIES=all
	$(PY) -m benchmarks.demo $(if $(filter file,$(origin SF)),,--sf $(SF)) $(if $(filter file,$(origin QUERIES)),,--queries $(QUERIES))

test: ## build, and run every test of a line (random samples: SELINGER_SEED=… repeats them)
	@rm -rf $(TIMES)
	@$(MAKE) --no-print-directory test-scala
	@$(MAKE) --no-print-directory test-python
	@echo "Seconds:"; cat $(TIMES)/*

test-all: ## the same with every combination that `make test` takes samples of
	SELINGER_TEST_ALL=1 $(MAKE) --no-print-directory test

# $(call TIMED,part,command) keeps how long the command took.
TIMES = target/test-times
TIMED = (mkdir -p $(TIMES); start=$$(date +%s); $(2); code=$$?; \
  echo "$$(($$(date +%s) - start)) $(1)" > "$(TIMES)/$(1)"; exit $$code)

# Names what failed once more at the end, where the tests that passed do not hide it.
SCALA_LOG = target/test-scala-$(SPARK).log
test-scala: SHELL = bash
test-scala: $(VENV)/.ready $(SBT_READY)
	@mkdir -p target
	@set -o pipefail; $(call TIMED,scala,SPARK=$(SPARK) $(SBT) test 2>&1 | tee $(SCALA_LOG)) || \
	  { grep -m1 -o 'repeat with SELINGER_SEED=.*' $(SCALA_LOG); echo "Failed:"; grep -A 3 'FAILED \*\*\* (\|ABORTED \*\*\*\|^\[error\] .*: error' $(SCALA_LOG); exit 1; }

PYTEST = $(PY) -m pytest -q -c python/pyproject.toml --rootdir=.

# These have a JVM of their own.
ELSEWHERE = $(addprefix --ignore=tests/python/,test_tpcds.py test_scale.py test_fuzz.py)

# Two at a time; what each says is printed when it ends.
test-python: $(JAR) $(VENV)/.ready
	@$(MAKE) --no-print-directory -j2 --output-sync=target $(PYTHON_PARTS)

test-package:
	@$(call TIMED,python - package,$(PYTEST) tests/python $(ELSEWHERE))

test-connect:
	@$(call TIMED,python - package over Connect,SELINGER_TEST_CONNECT=1 $(PYTEST) tests/python/spark)

test-tpcds:
	@$(call TIMED,python - TPC-DS,$(PYTEST) tests/python/test_tpcds.py)

# With settings of its own: memory, and errors that are not logged.
test-fuzz:
	@$(call TIMED,python - fuzzing,$(PYTEST) tests/python/test_fuzz.py)

# In a JVM of its own: near-equal plans are told apart by the ids of columns, which others use up.
test-scale:
	@$(call TIMED,python - plans at scale,$(PYTEST) tests/python/test_scale.py)

# The newest Delta, and the Spark line that it is built for: its tables work with that one only.
DELTA_SPARK = 4.2
DELTA_PARTS = io.delta:delta-spark_$(DELTA_SPARK)_2.13:4.4.0 io.delta:delta-storage:4.4.0 \
  io.delta:delta-kernel-api:4.4.0 io.delta:delta-kernel-defaults:4.4.0 \
  io.delta:delta-kernel-unitycatalog:4.4.0 io.unitycatalog:unitycatalog-client:0.6.0 \
  io.unitycatalog:unitycatalog-hadoop:0.6.0

test-delta: $(JAR) $(VENV)/.ready ## run the tests beside Delta Lake, whose jars Maven gets: SPARK=4.2 for its tables too
	$(foreach part,$(DELTA_PARTS),mvn --quiet dependency:copy -Dartifact=$(part) -DoutputDirectory=.tools/delta &&) true
	SELINGER_DELTA_JARS=.tools/delta $(PYTEST) tests/python/test_delta.py

fuzz: $(JAR) $(VENV)/.ready ## run random queries against stock Spark and DuckDB: N, SEED, CASE
	$(PY) -m tests.fuzz --queries $(N) --seed $(SEED) $(if $(CASE),--case $(CASE))

lint: $(VENV)/.ready $(SBT_READY) ## check format, lint and types of Scala and Python
	# The jar too, since everything is compiled here: sbt need not start again for it.
	SPARK=$(SPARK) $(SBT) scalafmtCheckAll scalafmtSbtCheck package Test/compile
	@touch $(JAR)
	$(VENV)/bin/ruff check --config python/pyproject.toml python benchmarks tests/fuzz tests/python
	$(VENV)/bin/ruff format --check --config python/pyproject.toml python benchmarks tests/fuzz tests/python
	$(VENV)/bin/mypy --config-file python/pyproject.toml python/selinger benchmarks tests/fuzz tests/python

format: $(VENV)/.ready $(SBT_READY) ## format Scala and Python
	SPARK=$(SPARK) $(SBT) scalafmtAll scalafmtSbt
	$(VENV)/bin/ruff format --config python/pyproject.toml python benchmarks tests/fuzz tests/python

docs: docs-benchmarks $(VENV)/.ready $(SBT_READY) ## write the generated documentation
	SELINGER_WRITE_DOCS=1 SPARK=$(SPARK) $(SBT) "testOnly io.selinger.docs.*"

docs-benchmarks: $(VENV)/.ready ## write docs/benchmarks.md from the published figures
	$(PY) -m benchmarks.publish

bench: $(JAR) $(VENV)/.ready ## measure profiles in turn: SF, QUERIES, RUNS, PROFILES, SUITE, LAYOUT, MEMORY, PUBLISH=1
	$(PY) -m benchmarks.run --suite $(SUITE) --sf $(SF) --layout $(LAYOUT) --queries $(QUERIES) --runs $(RUNS) --profiles $(PROFILES) --memory $(MEMORY) $(PUBLISHING)

bench-aggregates: $(JAR) $(VENV)/.ready ## measure aggregations of our own against stock Spark: SF, RUNS
	$(PY) -m benchmarks.run --suite aggregates --sf $(SF) --queries $(QUERIES) --runs $(RUNS) --profiles $(PROFILES) --memory $(MEMORY) --out benchmarks/results/aggregates.json $(PUBLISHING)

bench-ablation: $(TEST_JAR) $(VENV)/.ready ## measure what each mechanism of the join ordering brings
	$(PY) -m benchmarks.ablation $(PUBLISHING)

bench-operators: $(JAR) $(VENV)/.ready ## measure join operators against the cost model, fit its constants
	$(PY) -m benchmarks.operators --memory $(MEMORY) $(PUBLISHING)

bench-plancost: $(JAR) $(VENV)/.ready ## measure what planning costs, files known, and first plans of JVMS=10 JVMs: SF, QUERIES, SUITE
	$(PY) -m benchmarks.plancost --suite $(SUITE) --sf $(SF) --queries $(QUERIES) --jvms $(JVMS) $(PUBLISHING)

bench-walks: $(JAR) $(VENV)/.ready ## measure the planning of 113 made-up queries of 4 to 17 joins, the first time and again: SF, SUITE
	$(PY) -m benchmarks.plancost --suite $(SUITE) --sf $(SF) --walks 113 $(PUBLISHING)

bench-analyze: $(JAR) $(VENV)/.ready ## measure selinger.analyze against Spark's ANALYZE: SF, RUNS
	$(PY) -m benchmarks.analyze --sf $(SF) --runs $(RUNS) --memory $(MEMORY) $(PUBLISHING)

bench-estimates: $(TEST_JAR) ## compare estimated with true rows: SF, QUERIES, SUITE, ANALYZED=1
	$(PY) -m benchmarks.estimates --suite $(SUITE) --sf $(SF) --queries $(QUERIES) $(if $(ANALYZED),--analyzed) $(PUBLISHING)

bench-planning: $(TEST_JAR) ## measure how long orders of joins take to find, and what they cost
	$(PY) -m benchmarks.planning $(PUBLISHING)

$(TEST_JAR): $(JAR) $(shell find benchmarks/scala tests/scala -name '*.scala')
	SPARK=$(SPARK) $(SBT) Test/package
	@touch $@

clean: ## remove what the build made (not the environments, not the data)
	rm -rf target project/target project/project python/selinger/jars python/dist

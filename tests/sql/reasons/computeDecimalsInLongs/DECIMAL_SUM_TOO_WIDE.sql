SELECT sum(cast(amount AS decimal(30,2))) FROM sales

"""
Results on their way to readers: files, tables, the HTML report, published figures and their page.

Nothing here starts a session or measures.
"""

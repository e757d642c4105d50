"""The impact report: from changed files over the import graph at head to operators, models, lanes and the CI's tests.

Sources are parsed and never run. What the report says of lanes errs towards "reached".
"""

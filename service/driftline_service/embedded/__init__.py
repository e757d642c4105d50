"""The whole stack on one machine: PostgreSQL, service, reconciler and worker, supervised by one that they die with.

Only this package knows about folders, processes and ports; the parts it starts are those of production.
"""

"""PostgreSQL: tables, engine, storable text, migrations' entry. What a state change means is decided in runs/."""

"""A repository's own tests run by pytest in processes of their own, and the tolerances that their files hold."""

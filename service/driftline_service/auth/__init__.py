"""Who may do what: the admin token, and which Host and Origin a request may name. No route lives here."""

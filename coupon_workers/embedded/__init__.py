"""Real PostgreSQL and Valkey servers from wheels, and the supervisor of our own processes."""

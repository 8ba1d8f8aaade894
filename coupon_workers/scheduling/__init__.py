"""One leader, logical runs that happen once, and the table's job type."""

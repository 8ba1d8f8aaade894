"""What we are measured against: small honest programs that do the same work the plain way."""

"""Campaigns: whom a batch is for, read from a file or from an expression over users' tags."""

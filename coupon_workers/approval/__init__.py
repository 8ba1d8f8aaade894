"""A second person for what costs much: publications and changes of templates that wait for one, and their decisions."""

"""Who changed what, when, and from what to what: the log of operators' writes."""

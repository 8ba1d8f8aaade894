"""Words of campaign batches and of batches of codes."""

from __future__ import annotations

from web.console.language import N_

BATCH_WORDS = {
    "staging": N_("reading the audience"),
    "ready": N_("ready"),
    "running": N_("running"),
    "done": N_("done"),
    "cancelled": N_("cancelled"),
    "failed": N_("failed"),
    "all_or_nothing": N_("all or nothing"),
    "best_effort": N_("as many as there are"),
    "issued": N_("issued"),
    "refused": N_("refused"),
    "duplicate": N_("named twice"),
    "invalid": N_("not readable"),
    "generating": N_("being generated"),
    "generated": N_("generated"),
    "kept": N_("not fetched yet"),
    "fetched": N_("fetched"),
    "dropped": N_("deleted with the batch"),
    "used": N_("used"),
}

BATCH_TONES = {
    "good": ("done",),
    "wait": ("staging", "ready", "running", "generating"),
    "warn": ("cancelled",),
    "bad": ("failed",),
}

BATCH_REASONS = {
    "BATCH_NOT_FOUND": N_("There is no such batch."),
    "OWN_BATCH": N_("Another person approves: your key made it."),
    "FAILURES_NOT_KEPT": N_("Failures are kept for 90 days after the end of a batch."),
    "TEMPLATE_NOT_ACTIVE": N_("The template is not active. A scheduled one takes a batch that starts with it."),
    "CODE_BATCH_NOT_FOUND": N_("There is no such batch of codes."),
    "CODE_NOT_FOUND": N_("No code reads so."),
    "CODES_FETCHED": N_("The codes were fetched already; they can be fetched once."),
    "CODES_DROPPED": N_("The batch has ended: its codes are worth nothing, and were deleted."),
    "FETCH_IN_PROGRESS": N_("Somebody is fetching them at this moment."),
    "NOT_READY": N_("They are still being generated."),
    "NOT_ENOUGH_STOCK": N_("The template has not so many units left."),
    "CODES_NOT_SET_UP": N_("Codes need the setting COUPON_CODE_PEPPER, which is not set."),
    "TYPE_NOT_OFFERED": N_("Random amounts cannot be given away so."),
}

FILE_WORDS = {
    "EMPTY_FILE": N_("The file is empty."),
    "NO_ROWS": N_("The file has no rows: nobody would get a coupon."),
    "HEADER_MISSING": N_("The file has no header: its first row must name a column user_id."),
    "COLUMN_MISSING": N_("The file has no column user_id."),
    "COLUMN_AMBIGUOUS": N_("The file has more than one column user_id."),
    "COLUMN_TYPE": N_("The column user_id must hold texts or whole numbers."),
    "NOT_PARQUET": N_("This is not a whole Parquet file."),
    "NOT_JSONL": N_("JSONL has an object in each line; this is one list."),
    "TRUNCATED": N_("The file ends too early: it was cut off."),
    "ENCODING": N_("The file is not in UTF-8. Save it as CSV UTF-8."),
    "BINARY": N_("This is neither CSV nor JSONL nor Parquet. Of a spreadsheet, save a sheet as CSV."),
    "TOO_LARGE": N_("A row group of the Parquet file is too large. Write smaller ones."),
}
"""Why a file is not taken, by its ``file_code``."""

STATEMENT_FILE_WORDS = {
    "EMPTY_FILE": N_("The file is empty. Of a day without orders it has its header still."),
    "HEADER_MISSING": N_("The file has no header: its first row must name the columns."),
    "COLUMN_MISSING": N_("The file lacks a column."),
    "COLUMN_AMBIGUOUS": N_("The file has a column twice."),
    "COLUMN_UNKNOWN": N_("The file has columns that a statement does not have."),
}
"""The same of a statement of orders."""

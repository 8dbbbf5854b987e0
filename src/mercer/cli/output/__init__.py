"""What commands show and write: sections of text, JSON objects, and reports."""

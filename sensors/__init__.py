"""What starts work: raw drops that land, and later calendars."""

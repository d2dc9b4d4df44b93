"""Chess for people: boards, the tables of rows, their columns, and the facts of a folder."""

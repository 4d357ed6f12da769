"""Pages of every command but `certify`, made of one set of parts: claim, warnings, cards, figures, tables, texts."""

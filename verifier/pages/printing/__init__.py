"""What commands print: of audits, of measures, of attacks, and as JSON."""

"""What is shown: tables on the terminal, figures, and the page of a run."""

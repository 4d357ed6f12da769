"""Single words that change answers: kappa of every word of a vocabulary, and rho, exactly."""

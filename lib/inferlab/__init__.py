"""Count, derive, run and predict LLM inference: the library behind the course."""

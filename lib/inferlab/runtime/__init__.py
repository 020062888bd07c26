"""A real language model in plain NumPy: the file, the tokenizer, the decoder, the loop."""

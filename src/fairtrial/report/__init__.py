"""Pages, charts and sentences made from plain numbers. No model, no torch."""

"""Results that were made elsewhere: read from what others write, and judged by the statistics of a study."""

"""The atlas: many ideas in several studies, corrected as one family; what helps, what hurts, what cannot be seen."""

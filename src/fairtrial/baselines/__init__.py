"""What a transformer must beat: simple models, fitted on the same training split and scored on the same items."""

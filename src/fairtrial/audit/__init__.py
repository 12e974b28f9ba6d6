"""The leak audit: an audit that every variant passes before anyone believes its number."""

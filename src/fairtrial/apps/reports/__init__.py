"""The five reports that fairtrial was made from, retried."""

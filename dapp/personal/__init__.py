"""What belongs to somebody: sessions, drafts, notifications."""

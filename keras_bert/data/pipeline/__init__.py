"""The work of `prepare` and `vocab` on Apache Beam."""

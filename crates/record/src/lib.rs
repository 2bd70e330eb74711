//! What a trial produced: the schema, the record file, the store and its index.

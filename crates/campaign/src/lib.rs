//! Campaign files, the plan made of them, and the loop that runs it and can be resumed.

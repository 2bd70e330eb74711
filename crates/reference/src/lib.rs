//! Reference strings: which page is touched when; portable random numbers; the files that hold strings.

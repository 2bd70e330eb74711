//! How results are shown: terminal and mail tables, the HTML page, exchange formats.

//! Estimators, intervals, tests and decision rules: is B better than A, by how much, how sure?

//! Comparisons: records of several variants, paired by seed, judged and explained.

# Makes r.json: what R's wilcox.test, fisher.test and p.adjust say about the same definitions.
#
#     Rscript make.R > r.json
#
# R's exact tests refuse ties, so all data here are without; scipy.json has the ties.

set.seed(20261120)
number <- function(x) paste0("[", paste(sprintf("%.17g", x), collapse = ", "), "]")
one <- function(x) sprintf("%.17g", x)

paired <- character()
for (n in 2:49) for (level in c(0.9, 0.95, 0.99)) {
  d <- rnorm(n, 0.3)
  if (n %% 10 == 3) d <- d * 1e-200
  if (n %% 10 == 6) d <- d * 1e200
  # A level that cannot be had gives a warning and the widest interval there is.
  r <- suppressWarnings(wilcox.test(d, conf.int = TRUE, conf.level = level, exact = TRUE))
  paired <- c(paired, sprintf('  {"d": %s, "level": %s, "p": %s, "value": %s, "low": %s, "high": %s}',
    number(d), one(level), one(r$p.value), one(r$estimate), one(r$conf.int[1]), one(r$conf.int[2])))
}

unpaired <- character()
for (size in list(c(2, 3), c(4, 4), c(5, 9), c(12, 10), c(20, 25), c(30, 30))) for (level in c(0.9, 0.95, 0.99)) {
  a <- rnorm(size[1]); b <- rnorm(size[2], 0.5)
  r <- suppressWarnings(wilcox.test(b, a, conf.int = TRUE, conf.level = level, exact = TRUE))
  unpaired <- c(unpaired, sprintf('  {"a": %s, "b": %s, "level": %s, "p": %s, "value": %s, "low": %s, "high": %s}',
    number(a), number(b), one(level), one(r$p.value), one(r$estimate), one(r$conf.int[1]), one(r$conf.int[2])))
}

# Beyond the exact range: normal approximation, ties and continuity corrected.
approximate <- character()
for (n in c(70, 100, 300)) {
  d <- round(rnorm(n, 0.2), 1)
  d <- d[d != 0]
  r <- wilcox.test(d, exact = FALSE, correct = TRUE)
  approximate <- c(approximate, sprintf('  {"d": %s, "p": %s}', number(d), one(r$p.value)))
}

fisher <- character()
for (t in list(c(8, 10, 2, 10), c(3, 7, 4, 7), c(9, 30, 21, 31), c(100, 1000, 140, 1000))) {
  r <- fisher.test(matrix(c(t[1], t[2] - t[1], t[3], t[4] - t[3]), 2))
  fisher <- c(fisher, sprintf('  {"a": [%d, %d], "b": [%d, %d], "p": %s}', t[1], t[2], t[3], t[4], one(r$p.value)))
}

adjust <- character()
for (n in c(1, 4, 30)) {
  p <- runif(n)^3
  adjust <- c(adjust, sprintf('  {"p": %s, "holm": %s, "bh": %s}', number(p), number(p.adjust(p, "holm")), number(p.adjust(p, "BH"))))
}

section <- function(name, rows) sprintf('"%s": [\n%s\n]', name, paste(rows, collapse = ",\n"))
cat("{\n", sprintf('"made_by": "make.R with %s"', R.version.string), ",\n",
  paste(section("paired", paired), section("unpaired", unpaired), section("approximate", approximate),
    section("fisher", fisher), section("adjustments", adjust), sep = ",\n"), "\n}\n", sep = "")

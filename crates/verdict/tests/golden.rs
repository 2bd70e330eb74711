//! Compares every estimator, interval and p-value with scipy, statsmodels and R, to a relative error of 1e-9.
//!
//! The files are made by `golden/make.py` and `golden/make.R`.

use pagetide_verdict::proportion;
use pagetide_verdict::sample::{Bin, Count};
use pagetide_verdict::signed_rank::Zeros;
use pagetide_verdict::{
    Interval, adjust, nested, normal, outlier, rank_sum, sign_flip, signed_rank, tail,
};
use serde_json::Value;

fn load(text: &str) -> Value {
    serde_json::from_str(text).expect("golden files are JSON")
}

fn scipy() -> Value {
    load(include_str!("golden/scipy.json"))
}

fn r() -> Value {
    load(include_str!("golden/r.json"))
}

/// The cases of a section; fails if there are fewer than `least`.
fn cases<'a>(golden: &'a Value, section: &str, least: usize) -> &'a [Value] {
    let cases = golden[section].as_array().expect("sections are lists");
    assert!(cases.len() >= least, "{section}: {} cases", cases.len());
    cases
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(number)
        .collect()
}

fn count(value: &Value) -> Count {
    Count {
        successes: value[0].as_u64().expect("a count"),
        attempts: value[1].as_u64().expect("a count"),
    }
}

#[track_caller]
fn close(got: f64, want: f64, case: &Value) {
    let error = (got - want).abs();
    assert!(
        error <= 1e-9 * want.abs() || (want == 0.0 && error < 1e-15),
        "got {got}, want {want}, in {case}"
    );
}

#[track_caller]
fn same_ends(got: Interval, case: &Value) {
    close(got.low, number(&case["low"]), case);
    close(got.high, number(&case["high"]), case);
}

#[test]
fn signed_rank_p_values_agree_with_scipy_with_and_without_ties() {
    for case in cases(&scipy(), "signed_rank", 250) {
        let zeros = match case["zeros"].as_str() {
            Some("drop") => Zeros::Drop,
            _ => Zeros::Pratt,
        };
        let test = signed_rank::test(&numbers(&case["d"]), zeros).unwrap();
        close(test.p, number(&case["p"]), case);
    }
}

#[test]
fn rank_sum_p_values_agree_with_scipy_with_and_without_ties() {
    for case in cases(&scipy(), "rank_sum", 50) {
        let test = rank_sum::test(&numbers(&case["a"]), &numbers(&case["b"])).unwrap();
        close(test.p, number(&case["p"]), case);
    }
}

#[test]
fn sign_flip_p_values_agree_with_scipy_over_all_permutations() {
    for case in cases(&scipy(), "sign_flip", 60) {
        let test = sign_flip::test(&numbers(&case["d"]), 0, 0).unwrap();
        assert!(test.exact);
        close(test.p, number(&case["p"]), case);
    }
}

#[test]
fn paired_estimates_and_intervals_agree_with_inverted_scipy_tests_and_with_r() {
    let (scipy, r) = (scipy(), r());
    let both = cases(&scipy, "paired_estimates", 30)
        .iter()
        .chain(cases(&r, "paired", 140));
    for case in both {
        let found = signed_rank::estimate(&numbers(&case["d"]), number(&case["level"])).unwrap();
        close(found.value, number(&case["value"]), case);
        same_ends(found.interval.unwrap(), case);
    }
}

#[test]
fn unpaired_estimates_and_intervals_agree_with_inverted_scipy_tests_and_with_r() {
    let (scipy, r) = (scipy(), r());
    let both = cases(&scipy, "unpaired_estimates", 9)
        .iter()
        .chain(cases(&r, "unpaired", 18));
    for case in both {
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        let found = rank_sum::estimate(&a, &b, number(&case["level"])).unwrap();
        close(found.value, number(&case["value"]), case);
        same_ends(found.interval.unwrap(), case);
    }
}

#[test]
fn p_values_agree_with_r() {
    let r = r();
    for case in cases(&r, "paired", 140)
        .iter()
        .chain(cases(&r, "approximate", 3))
    {
        let test = signed_rank::test(&numbers(&case["d"]), Zeros::Drop).unwrap();
        close(test.p, number(&case["p"]), case);
    }
    for case in cases(&r, "unpaired", 18) {
        let test = rank_sum::test(&numbers(&case["a"]), &numbers(&case["b"])).unwrap();
        close(test.p, number(&case["p"]), case);
    }
}

#[test]
fn wilsons_intervals_agree_with_scipy() {
    let scipy = scipy();
    for case in cases(&scipy, "wilson", 60) {
        let count = Count {
            successes: case["successes"].as_u64().unwrap(),
            attempts: case["attempts"].as_u64().unwrap(),
        };
        same_ends(
            proportion::wilson(count, number(&case["level"])).unwrap(),
            case,
        );
    }
}

#[test]
fn exact_tests_of_proportions_agree_with_scipy_and_r() {
    let (scipy, r) = (scipy(), r());
    for case in cases(&scipy, "fisher", 8)
        .iter()
        .chain(cases(&r, "fisher", 4))
    {
        let test = proportion::fisher(count(&case["a"]), count(&case["b"])).unwrap();
        close(test.p, number(&case["p"]), case);
    }
}

#[test]
fn adjusted_p_values_agree_with_statsmodels_scipy_and_r() {
    let (scipy, r) = (scipy(), r());
    for case in cases(&scipy, "adjustments", 4)
        .iter()
        .chain(cases(&r, "adjustments", 3))
    {
        let p = numbers(&case["p"]);
        for (got, want) in adjust::benjamini_hochberg(&p)
            .iter()
            .zip(numbers(&case["bh"]))
        {
            close(*got, want, case);
        }
    }
}

#[test]
fn distributions_agree_with_scipy() {
    let scipy = scipy();
    let distributions = &scipy["distributions"];
    for case in cases(distributions, "quantile", 10) {
        close(
            normal::quantile(number(&case["p"])),
            number(&case["z"]),
            case,
        );
    }
    for case in cases(distributions, "cdf", 10) {
        close(normal::cdf(number(&case["z"])), number(&case["p"]), case);
    }
    for case in cases(distributions, "student", 50) {
        let got = normal::student_quantile(number(&case["p"]), number(&case["freedom"]));
        close(got, number(&case["t"]), case);
    }
}

#[test]
fn modified_z_scores_agree_with_scipy() {
    for case in cases(&scipy(), "outliers", 3) {
        let got = outlier::modified_z_scores(&numbers(&case["values"])).unwrap();
        for (got, want) in got.iter().zip(numbers(&case["scores"])) {
            close(*got, want, case);
        }
    }
}

#[test]
fn pooled_quantiles_agree_with_numpy_however_the_values_are_split_into_trials() {
    for case in cases(&scipy(), "quantiles", 30) {
        let values = numbers(&case["values"]);
        for trials in [1, 2, 7] {
            let split: Vec<Vec<Bin>> = values
                .chunks(values.len().div_ceil(trials))
                .map(|chunk| chunk.iter().map(|&value| Bin { value, count: 1 }).collect())
                .collect();
            let got = tail::pooled_quantile(&split, number(&case["q"])).unwrap();
            close(got, number(&case["value"]), case);
        }
    }
}

#[test]
fn variance_components_agree_with_scipys_analysis_of_variance() {
    for case in cases(&scipy(), "components", 2) {
        let units: Vec<Vec<f64>> = case["units"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .collect();
        let got = nested::components(&units).unwrap();
        close(got.within, number(&case["within"]), case);
        close(got.between, number(&case["between"]), case);
    }
}

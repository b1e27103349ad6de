//! Sums of counters over replications.

use std::collections::BTreeMap;

/// Counters to which those of another replication can be added.
pub trait Merge {
    /// Adds the counters of another replication.
    fn merge(&mut self, other: &Self);
}

macro_rules! merge_numbers {
    ($($number:ty)+) => {
        $(impl Merge for $number {
            fn merge(&mut self, other: &Self) {
                *self += *other;
            }
        })+
    };
}

merge_numbers!(u64 u128 f64);

impl<T: Merge + Clone + Default> Merge for Vec<T> {
    fn merge(&mut self, other: &Self) {
        merge_by_index(self, other);
    }
}

impl<T: Merge, const N: usize> Merge for [T; N] {
    fn merge(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(sum, each)| sum.merge(each));
    }
}

impl<K: Copy + Ord, V: Merge + Default> Merge for BTreeMap<K, V> {
    fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(key, each)| self.entry(*key).or_default().merge(each));
    }
}

/// Adds `other` to `sums` by index; `sums` grows if necessary.
pub fn merge_by_index<T: Merge + Clone + Default>(sums: &mut Vec<T>, other: &[T]) {
    if other.len() > sums.len() {
        sums.resize(other.len(), T::default());
    }
    sums.iter_mut().zip(other).for_each(|(sum, each)| sum.merge(each));
}

/// Implements [`Merge`] for a struct, field by field.
macro_rules! merge_fields {
    ($Counters:ident { $($field:ident),+ }) => {
        impl $crate::merge::Merge for $Counters {
            fn merge(&mut self, other: &Self) {
                let Self { $($field),+ } = other;
                $($crate::merge::Merge::merge(&mut self.$field, $field);)+
            }
        }
    };
}
pub(crate) use merge_fields;

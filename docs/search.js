// Order of the search results: pages that solve a task first, lists of names and changes last.
const PREFERENCE = [
  [/^(CONTRIBUTING|docs\/how-to)/, 3],
  [/^docs\/(labs|tutorial|faq|concepts|gallery|install|playground|when-not)/, 2],
  [/^(docs\/reference|CHANGELOG|ARCHITECTURE)/, -2],
];

var Scorer = {
  score: ([page, , , , score]) =>
    score + PREFERENCE.reduce((sum, [pages, points]) => sum + (pages.test(page) ? points : 0), 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// The words of captions: what each rule of the tokeniser keeps together and what it parts.
#include <gtest/gtest.h>

#include <string>

#include "tasks/ptb_tokenizer.h"
#include "tests/mutate.h"

namespace {

using hdetach::tasks::ptb_tokenize;

struct Case {
  const char *caption, *words;
};

void expect_words(std::initializer_list<Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(ptb_tokenize(c.caption), c.words) << c.caption;
}

TEST(Tokenizer, PutsWordsInLowerCaseAndLeavesPunctuationOut) {
  expect_words({{"A dog's bowl, isn't it?", "a dog 's bowl is n't it"},
                {"  A man ;  a plan: a canal - panama -- ...  ", "a man a plan a canal panama"},
                {"He said \"stop\" and 'go' and ``now''.", "he said stop and go and now"},
                {"wow!! really?! yes.", "wow !! really ?! yes"},
                {"one ----- two ---- three", "one ----- two three"},
                {"two\nlines\tand\r\nmore", "two lines and more"},
                {"", ""},
                {" . ", ""}});
}

TEST(Tokenizer, SplitsContractions) {
  expect_words({{"I'm here, you're there; they've gone, we'll see, he'd go, it's so",
                 "i 'm here you 're there they 've gone we 'll see he 'd go it 's so"},
                {"don't can't won't ain't DIDN'T", "do n't ca n't wo n't ai n't did n't"},
                {"cannot gonna gotta wanna lemme gimme 'tis 'twas",
                 "can not gon na got ta wan na lem me gim me 't is 't was"},
                {"the dogs' bowls", "the dogs bowls"},
                {"dos and don'ts", "dos and do n'ts"},
                {"the '90s and the 1970's, in '98 too", "the '90s and the 1970 's in '98 too"},
                {"don\u2019t stop John\u2019s car", "do n't stop john 's car"},
                {"rock'n'roll, get 'em, y'all", "rock 'n' roll get 'em y' all"}});
}

TEST(Tokenizer, KeepsWordsWithApostrophes) {
  expect_words({{"6 o'clock O'Brien d'Angelo Hawai'i", "6 o'clock o'brien d'angelo hawai'i"},
                {"c'mon s'mores Dunkin' ol' cap'n", "c'mon s'mores dunkin' ol' cap'n"},
                {"BABY'S", "baby 's"}});
}

TEST(Tokenizer, KeepsCompounds) {
  expect_words(
      {{"a well-lit, black-and-white photo", "a well-lit black-and-white photo"},
       {"black- and white", "black and white"},
       {"a 3-way, 1,000-pound, U.S.-based, post-it-note",
        "a 3-way 1,000-pound u.s.-based post-it-note"},
       {"refrigerator/freezer and/or w/o w/ lid", "refrigerator/freezer and/or w/o w / lid"},
       {"red/green/blue/black", "red/green/blue / black"},
       {"AT&T and M&M and b&w", "at&t and m&m and b & w"},
       {"end.Start here", "end.start here"},
       {"connect_anywhere", "connect_anywhere"}});
}

TEST(Tokenizer, LeavesAbbreviationsTheirFullStop) {
  expect_words({{"A sign for Morgan Rd.", "a sign for morgan rd."},
                {"First St. sign, Ave. and Blvd. too", "first st. sign ave. and blvd. too"},
                {"pans, pots, etc.  ", "pans pots etc."},
                {"Mr. Smith of Dept. 5", "mr. smith of dept. 5"},
                {"the U.S. flag at 5 p.m. by T.V.", "the u.s. flag at 5 p.m. by t.v."},
                {"in the wash.", "in the wash"},
                {"in Wash.", "in wash."},
                {"No. 5 and no.", "no. 5 and no"},
                {"ready to bat.,", "ready to bat."},
                {"plan B.", "plan b"},
                {"plan B. the dog", "plan b. the dog"},
                {"a Ph.D. student", "a ph.d. student"}});
}

TEST(Tokenizer, KnowsNumbers) {
  expect_words(
      {{"1,000.50 -5 +9 5:55, 12:30:10 .5", "1,000.50 -5 +9 5:55 12:30:10 .5"},
       {"50% of #25 for $14.99", "50 % of # 25 for $ 14.99"},
       {"on 5/12/2014 or 5-12-14", "on 5/12/2014 or 5-12-14"},
       {"1/2 a pizza, 5 1/2 pizzas", "1/2 a pizza 5\u00A01/2 pizzas"},
       {"\u00BD a pie for \u00A35 or 5\u20AC or 5\u00A2", "1/2 a pie for # 5 or 5 $ or 5 cents"},
       {"call (555) 123-4567 or +1 555 123 4567",
        "call -lrb-555-rrb-\u00A0123-4567 or +1 555\u00A0123\u00A04567"},
       {"the 2nd of 50s 3D e2", "the 2nd of 50s 3d e2"}});
}

TEST(Tokenizer, KeepsAddresses) {
  expect_words(
      {{"see http://a.org/b?c=1, now", "see http://a.org/b?c=1 now"},
       {"at www.Example-1.com/path. or site.com/xy", "at www.example-1.com/path or site.com/xy"},
       {"mail me@site.org.", "mail me@site.org"},
       {"#sunset by @some_one @ noon", "#sunset by @some_one @ noon"},
       {"<b>bold</b> <3", "<b> bold </b> < 3"}});
}

// coco-caption looks for -LRB- among words in lower case, so that brackets stay.
TEST(Tokenizer, BracketsStayAsWords) {
  expect_words({{"(ladder) [x] {y} <z", "-lrb- ladder -rrb- -lsb- x -rsb- -lcb- y -rcb- < z"},
                {"nice :) day", "nice :-rrb- day"}});
}

TEST(Tokenizer, ReadsEntitiesAndUnicode) {
  expect_words({{"salt &amp; pepper &lt; &quot;x&quot; &nbsp; a&mdash;b", "salt & pepper < x a b"},
                {"\u201CA\u201D \u2018b\u2019 \u2014 c\u2026 \u2013", "a b c"},
                {"CAF\u00C9 na\u00EFve caf&eacute;s", "caf\u00E9 na\u00EFve caf&eacute;s"},
                {"\u041F\u0420\u0418\u0412\u0415\u0422 \u72D7",
                 "\u043F\u0440\u0438\u0432\u0435\u0442 \u72D7"},
                {"soft\u00ADhyphen \u00A0 \U0001F600 \u2665", "softhyphen \u2665"},
                {"a \xFF\xC3 b\xE2\x82 c", "a b c"}});
}

TEST(Tokenizer, WordsAreNeverEmptyWhateverTheBytes) {
  hdetach::Mutator mutate;
  const std::string seed =
      "He'd say: \"U.S. o'clock, don't (555) 123-4567 http://a.b/c me@x.y #1 1/2 w/ A&B ... ;)\"";
  for (int i = 0; i < 20000; ++i) {
    const std::string words = ptb_tokenize(mutate(mutate(seed)));
    EXPECT_EQ(words.find("  "), std::string::npos) << words;
    if (words.empty()) continue;
    EXPECT_NE(words.front(), ' ');
    EXPECT_NE(words.back(), ' ');
  }
}

// What rules look ahead for and do not find must not be looked for again from every place: each of
// these takes half a second, and would take hours where the time grew with the square.
TEST(Tokenizer, LongCaptionsTakeLinearTime) {
  for (const char* part : {"a", "a,", "%.", "a@", "<!a", "<a b='", "1.a.", ".", "www.a.aa/"}) {
    std::string caption;
    while (caption.size() < size_t{2} << 20) caption += part;
    EXPECT_LE(ptb_tokenize(caption).size(), 2 * caption.size()) << part;
  }
}

}  // namespace

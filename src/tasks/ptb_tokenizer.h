// Captions into words, as the COCO caption evaluation has them before it scores: the tokens of
// Stanford's PTBTokenizer 3.4.1 in lower case, without punctuation.
#pragma once

#include <string>
#include <string_view>

namespace hdetach::tasks {

// The words of a caption, joined by single spaces: "A dog's bowl, isn't it?" gives
// "a dog 's bowl is n't it". Any bytes are safe; those that are not UTF-8 are left out, as are
// characters the original does not know. The time is linear in the length.
//
// The original reads all captions of a run as one text, where the start of one can change the end
// of the one before: "plan B." is "plan b" before "The dog" and "plan b." before "the dog". Here
// every caption is read as if another that starts with "A " followed.
std::string ptb_tokenize(std::string_view caption);

}  // namespace hdetach::tasks

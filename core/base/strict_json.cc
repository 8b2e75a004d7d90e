#include "core/base/strict_json.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace planewise {
namespace {

using Json = nlohmann::json;

// Of a key that an error shows.
constexpr size_t kShownKeyBytesMax = 200;

// Checks structure and keeps nothing but the keys of the open objects. A false
// return ends the parse.
class StructureCheck : public nlohmann::json_sax<Json> {
 public:
  explicit StructureCheck(int depth_max) : depth_max_(depth_max) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    if (open_.back().insert(name).second) return true;
    problem_ = absl::StrCat("key \"", absl::CHexEscape(name.substr(0, kShownKeyBytesMax)),
                            "\" appears twice");
    return false;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    problem_ = absl::StrCat("not JSON: error at byte ", position);
    return false;
  }

 private:
  bool Open() {
    open_.emplace_back();
    if (static_cast<int>(open_.size()) <= depth_max_) return true;
    problem_ = absl::StrCat("nested deeper than ", depth_max_);
    return false;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  const int depth_max_;
  std::vector<absl::flat_hash_set<std::string>> open_;  // keys seen; empty for arrays
  std::string problem_;
};

}  // namespace

absl::StatusOr<Json> ParseStrictJson(absl::string_view text, int depth_max,
                                     absl::string_view what) {
  // nlohmann's lexer takes a NUL for the end and skips a byte-order mark.
  const size_t nul = text.find('\0');
  if (nul != absl::string_view::npos) {
    return Error(Reason::kInvalidCheckpoint, absl::StrCat(what, ": NUL at byte ", nul));
  }
  if (absl::StartsWith(text, "\xef\xbb\xbf")) {
    return Error(Reason::kInvalidCheckpoint,
                 absl::StrCat(what, ": begins with a byte-order mark; save it without one"));
  }
  StructureCheck check(depth_max);
  if (!Json::sax_parse(text.begin(), text.end(), &check)) {
    return Error(Reason::kInvalidCheckpoint, absl::StrCat(what, ": ", check.problem()));
  }
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

}  // namespace planewise

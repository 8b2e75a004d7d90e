#include "proto/status/status_codec.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::ElementsAre;
using testing::Pair;

// The detail of type T; fails the test if there is none.
template <typename T>
T Detail(const google::rpc::Status& proto) {
  T detail;
  for (const auto& any : proto.details()) {
    if (any.UnpackTo(&detail)) return detail;
  }
  ADD_FAILURE() << "no " << T::descriptor()->full_name() << " in " << proto.ShortDebugString();
  return detail;
}

TEST(StatusCodecTest, EveryReasonCarriesItsErrorInfoAndTheDetailOfItsCode) {
  for (const ReasonFacts& facts : AllReasons()) {
    SCOPED_TRACE(facts.name);
    const google::rpc::Status proto =
        StatusToProto(Error(facts.reason, "what went wrong").With("model", "a"));
    EXPECT_EQ(proto.code(), static_cast<int>(facts.code));
    EXPECT_EQ(proto.message(), "what went wrong");
    const auto info = Detail<google::rpc::ErrorInfo>(proto);
    EXPECT_EQ(info.domain(), "planewise");
    EXPECT_EQ(info.reason(), std::string(facts.name));
    EXPECT_EQ(info.metadata().at("model"), "a");
    switch (facts.code) {
      case absl::StatusCode::kInvalidArgument: {
        const auto detail = Detail<google::rpc::BadRequest>(proto);
        ASSERT_EQ(detail.field_violations_size(), 1);
        EXPECT_EQ(detail.field_violations(0).reason(), std::string(facts.name));
        break;
      }
      case absl::StatusCode::kFailedPrecondition: {
        const auto detail = Detail<google::rpc::PreconditionFailure>(proto);
        ASSERT_EQ(detail.violations_size(), 1);
        EXPECT_EQ(detail.violations(0).type(), std::string(facts.name));
        EXPECT_EQ(detail.violations(0).subject(), "a");
        break;
      }
      case absl::StatusCode::kResourceExhausted:
        EXPECT_EQ(Detail<google::rpc::QuotaFailure>(proto).violations(0).subject(), "a");
        break;
      case absl::StatusCode::kNotFound:
      case absl::StatusCode::kAlreadyExists: {
        const auto detail = Detail<google::rpc::ResourceInfo>(proto);
        EXPECT_EQ(detail.resource_type(), "model");
        EXPECT_EQ(detail.resource_name(), "a");
        break;
      }
      default:
        EXPECT_EQ(proto.details_size(), 1);
    }
  }
}

TEST(StatusCodecTest, ComesBackAsItWas) {
  for (const ReasonFacts& facts : AllReasons()) {
    SCOPED_TRACE(facts.name);
    const absl::Status sent = Error(facts.reason, "weight \"q\": too wide")
                                  .With("columns", 712)
                                  .With("model", "a")
                                  .WithRetryDelayMs(1500);
    const absl::Status received = StatusFromProto(StatusToProto(sent));
    EXPECT_EQ(received, sent);
    EXPECT_EQ(DetailsOf(received), DetailsOf(sent));
  }
}

TEST(StatusCodecTest, ViolationsComeBackWithTheirReasons) {
  for (const Reason reason : {Reason::kInvalidRequest, Reason::kNeedsMaster}) {
    const absl::Status sent = Error(reason, "2 weights")
                                  .WithViolation({Reason::kColumnwiseMissing, "q", "no column"})
                                  .WithViolation({Reason::kGeometryMismatch, "k", "1-D blocks"});
    EXPECT_EQ(DetailsOf(StatusFromProto(StatusToProto(sent))), DetailsOf(sent));
  }
  const absl::Status quota =
      Error(Reason::kQuotaExceeded, "full").WithViolation({Reason::kQuotaExceeded, "s", "8 of 8"});
  EXPECT_EQ(DetailsOf(StatusFromProto(StatusToProto(quota))), DetailsOf(quota));
}

TEST(StatusCodecTest, OkIsCodeZeroAlone) {
  const google::rpc::Status proto = StatusToProto(absl::OkStatus());
  EXPECT_EQ(proto.ByteSizeLong(), 0u);
  PW_EXPECT_OK(StatusFromProto(proto));
}

TEST(StatusCodecTest, StatusWithoutDetailsGetsTheReasonOfItsCode) {
  const google::rpc::Status proto = StatusToProto(absl::UnavailableError("connection reset"));
  EXPECT_EQ(Detail<google::rpc::ErrorInfo>(proto).reason(), "UNAVAILABLE");
  google::rpc::Status foreign;
  foreign.set_code(static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(ReasonOf(StatusFromProto(foreign)), Reason::kInternal);
}

// Codes of failures that others make must never look retryable by accident.
TEST(StatusCodecTest, DefaultReasonsAgreeWithTheirCode) {
  for (int code = 1; code <= 16; ++code) {
    const auto status_code = static_cast<absl::StatusCode>(code);
    const ReasonFacts& facts = FactsOf(DefaultReason(status_code));
    EXPECT_TRUE(facts.code == status_code || facts.retry == Retry::kNever) << code;
  }
}

TEST(StatusCodecTest, ReasonOfANewerPeerIsKeptByName) {
  google::rpc::Status proto = StatusToProto(Error(Reason::kNotFound, "gone").With("model", "a"));
  google::rpc::ErrorInfo info = Detail<google::rpc::ErrorInfo>(proto);
  info.set_reason("FROM_THE_FUTURE");
  proto.mutable_details(0)->PackFrom(info);
  const absl::Status status = StatusFromProto(proto);
  EXPECT_EQ(ReasonOf(status), Reason::kNotFound);
  EXPECT_THAT(DetailsOf(status)->metadata,
              ElementsAre(Pair("model", "a"), Pair("peerReason", "FROM_THE_FUTURE")));
}

struct Utf8Case {
  const char* name;
  std::string text;
  std::string expected;
};

const Utf8Case kUtf8Cases[] = {
    {"plain", "weight \"q\"", "weight \"q\""},
    {"two, three and four bytes", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80",
     "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
    {"a lone continuation byte", "a\x80z", "a\\x80z"},
    {"cut short", "a\xE2\x82", "a\\xe2\\x82"},
    {"overlong slash", "\xC0\xAF", "\\xc0\\xaf"},
    {"a surrogate", "\xED\xA0\x80", "\\xed\\xa0\\x80"},
    {"past the last code point", "\xF4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
};

// Messages quote names from files, which may hold any byte; proto3 strings may not.
TEST(StatusCodecTest, TextThatIsNotUtf8IsEscaped) {
  for (const Utf8Case& c : kUtf8Cases) {
    SCOPED_TRACE(c.name);
    const google::rpc::Status proto =
        StatusToProto(Error(Reason::kNotFound, c.text).With("tensor", c.text));
    EXPECT_EQ(proto.message(), c.expected);
    google::rpc::Status parsed;
    ASSERT_TRUE(parsed.ParseFromString(proto.SerializeAsString()));
    EXPECT_EQ(*DetailsOf(StatusFromProto(parsed))->Find("tensor"), c.expected);
  }
}

}  // namespace
}  // namespace planewise

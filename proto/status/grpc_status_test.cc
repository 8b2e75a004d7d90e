#include "proto/status/grpc_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "gmock/gmock.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "proto/status/status_codec.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

TEST(GrpcStatusTest, ComesBackAsItWas) {
  const absl::Status sent = Error(Reason::kMemoryShortfall, "model \"a\": 5 bytes short")
                                .With("bytesShort", 5)
                                .WithRetryDelayMs(20);
  const grpc::Status wire = StatusToGrpc(sent);
  EXPECT_EQ(wire.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(wire.error_message(), "model \"a\": 5 bytes short");
  const absl::Status received = StatusFromGrpc(wire);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(DetailsOf(received), DetailsOf(sent));
  EXPECT_TRUE(StatusToGrpc(absl::OkStatus()).ok());
  PW_EXPECT_OK(StatusFromGrpc(grpc::Status::OK));
}

TEST(GrpcStatusTest, StatusOfTheLibraryGetsAReason) {
  const absl::Status status =
      StatusFromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "failed to connect"));
  EXPECT_THAT(status, HasReason(Reason::kUnavailable, "failed to connect"));
}

TEST(GrpcStatusTest, DetailsOfAnotherStatusAreNotBelieved) {
  const grpc::Status unrelated(grpc::StatusCode::NOT_FOUND, "real",
                               StatusToProto(Error(Reason::kInternal, "x")).SerializeAsString());
  EXPECT_THAT(StatusFromGrpc(unrelated), HasReason(Reason::kNotFound, "real"));
  const grpc::Status garbage(grpc::StatusCode::NOT_FOUND, "real", "\xFF\xFF");
  EXPECT_THAT(StatusFromGrpc(garbage), HasReason(Reason::kNotFound, "real"));
}

// A thousand missing tensors are one error, not a trailer that the peer refuses.
TEST(GrpcStatusTest, LongListsAreCutToWhatTrailersHold) {
  Error error(Reason::kNeedsMaster, std::string(5000, 'm'));
  error.With("model", std::string(3000, 'p'));
  for (int i = 0; i < 1000; ++i) {
    error.WithViolation({Reason::kColumnwiseMissing, absl::StrCat("layers.", i, ".weight"),
                         "the column plane is not stored"});
  }
  const grpc::Status wire = StatusToGrpc(error);
  EXPECT_LE(wire.error_details().size(), kDetailsBytesMax);
  EXPECT_LE(wire.error_message().size(), kMessageBytesMax);
  EXPECT_TRUE(absl::EndsWith(wire.error_message(), "m... (cut)"));

  const ErrorDetails details = *DetailsOf(StatusFromGrpc(wire));
  EXPECT_EQ(details.reason, Reason::kNeedsMaster);
  ASSERT_FALSE(details.violations.empty());
  EXPECT_EQ(details.violations[0].subject, "layers.0.weight");
  EXPECT_EQ(*details.Find("violationsOmitted"), absl::StrCat(1000 - details.violations.size()));
}

TEST(GrpcStatusTest, CutsBetweenCharacters) {
  std::string text;
  while (text.size() < 2 * kMessageBytesMax) text += "\xE2\x82\xAC";
  const std::string message = StatusToGrpc(Error(Reason::kInternal, text)).error_message();
  EXPECT_THAT(message, HasSubstr("\xE2\x82\xAC... (cut)"));
  EXPECT_THAT(message, testing::Not(HasSubstr("\\x")));
}

}  // namespace
}  // namespace planewise

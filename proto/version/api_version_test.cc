#include "proto/version/api_version.h"

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ApiVersionTest, MinorsMayDiffer) {
  PW_EXPECT_OK(CheckApiVersions(kApiVersion, kApiVersion));
  PW_EXPECT_OK(CheckApiVersions("1.7", "1.0"));
  PW_EXPECT_OK(CheckApiVersions("1.0", "1.12"));
}

TEST(ApiVersionTest, MajorsMayNot) {
  EXPECT_THAT(CheckApiVersions("1.0", "2.0"),
              HasReason(Reason::kClientTooOld, AllOf(HasSubstr("1.0"), HasSubstr("2.0"),
                                                     HasSubstr("upgrade the client"))));
  EXPECT_THAT(CheckApiVersions("10.0", "1.0"),
              HasReason(Reason::kClientTooOld, HasSubstr("upgrade the server")));
}

TEST(ApiVersionTest, WhatIsNoVersionIsNamed) {
  for (const char* text : {"", "1", "1.", ".0", "1.0.0", "v1.0", "-1.0", " 1.0", "1.x"}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(CheckApiVersions(text, "1.0"),
                HasReason(Reason::kInvalidRequest, HasSubstr("client_api_version")));
  }
  EXPECT_THAT(CheckApiVersions("1.0", "one"),
              HasReason(Reason::kInvalidRequest, HasSubstr("api_version \"one\"")));
}

}  // namespace
}  // namespace planewise

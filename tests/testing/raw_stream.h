#ifndef PLANEWISE_TESTS_TESTING_RAW_STREAM_H_
#define PLANEWISE_TESTS_TESTING_RAW_STREAM_H_
// One exchange of bytes on a gRPC stream whose messages the test does not have
// as types, or breaks on purpose.

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/support/status.h"

namespace planewise {

struct RawAnswer {
  std::string bytes;  // of the first message
  grpc::Status status;
};

// Sends `request` as the only message of a stream of `method`, "/package.Service/Method",
// reads one answer and waits for the end. Records a test failure if none comes.
RawAnswer ExchangeRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      const std::string& request);

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_RAW_STREAM_H_

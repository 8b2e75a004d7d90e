#include "service/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/posix_file_system.h"
#include "core/base/post_and_wait.h"
#include "core/base/serial_executor.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/model_store.h"
#include "core/device/cuda_device_facts.h"
#include "core/gemm/cpu_gemm.h"
#include "core/quant/quantizer.h"
#include "service/auth/auth_token.h"
#include "service/compute/cpu_linear_compute.h"
#include "service/compute/linear_compute.h"
#include "service/compute/linear_executor.h"
#include "service/rpc/call_gate.h"
#include "service/rpc/health_reporter.h"
#include "service/rpc/models_service.h"
#include "service/rpc/server_service.h"
#include "service/rpc/sessions_service.h"
#include "service/schedule/thread_runner.h"
#include "service/server_capabilities.h"
#include "service/session/session_table.h"
#include "service/weights/model_catalog.h"

namespace planewise {
namespace {

// One message: above the unary limits and the chunk size, so that a request
// that breaks one of those is told which.
constexpr int kReceiveBytesMax = 16 << 20;
// What gRPC may hold in flight for all connections: of every session the few
// chunks that are read ahead and one that goes out, and room for others.
constexpr size_t kTransportBytes = size_t{2} << 30;
// Time for answers to leave after the last call has been ended.
constexpr std::chrono::seconds kShutdownGrace{2};
constexpr absl::Duration kDrainPollInterval = absl::Milliseconds(20);

uint64_t RandomBits() {
  uint64_t bits = 0;
  // Cannot fail for so few bytes once the system has started.
  while (getrandom(&bits, sizeof(bits), 0) != sizeof(bits)) {
  }
  return bits;
}

absl::StatusOr<std::vector<std::string>> ResolveRoots(const std::vector<std::string>& roots) {
  std::vector<std::string> resolved;
  for (const std::string& root : roots) {
    absl::StatusOr<std::string> path = PosixFileSystem().Resolve(root);
    if (!path.ok()) return Annotate(path.status(), absl::StrCat("--root ", root));
    resolved.push_back(*std::move(path));
  }
  return resolved;
}

absl::Status WritePortFile(const std::string& path, int port) {
  const std::string temporary = path + ".tmp";
  std::ofstream file(temporary);
  file << port << "\n";
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return Error(Reason::kUnavailable,
               absl::StrCat("--port-file ", path, ": ", std::strerror(errno)));
}

}  // namespace

// In the order of construction; each may use what stands before it.
struct Server::Parts {
  Parts(const ServerOptions& server_options, JsonLog& json_log)
      : options(server_options),
        log(json_log),
        budget(MemoryBudget::Create(options.memory_limit_bytes)) {}

  ServerOptions options;
  JsonLog& log;
  const std::shared_ptr<MemoryBudget> budget;
  std::unique_ptr<ModelStore> store;  // nullptr without --store
  std::unique_ptr<CpuGemm> gemm;
  std::unique_ptr<LinearCompute> compute;
  std::optional<SerialExecutor> executor;
  std::optional<ThreadRunner> runner;
  std::optional<LinearExecutor> linear;
  std::optional<ModelCatalog> catalog;
  std::optional<SessionTable> sessions;
  std::optional<CallGate> gate;
  std::atomic<int> open_calls = 0;
  std::optional<HealthReporter> health;
  std::optional<ModelsService> models_service;
  std::optional<SessionsService> sessions_service;
  std::optional<ServerService> server_service;
  std::unique_ptr<grpc::Server> grpc_server;
  size_t model_count = 0;

  absl::Status OpenStore();
  absl::Status MakeCompute();
  absl::Status MakeLogic();
  absl::Status MakeServices();
  absl::Status Listen();
  void LoadStored();
  void Enter(ServingPhase phase);
  bool Busy();

  // Runs `action` on the executor and waits for it.
  template <typename Action>
  auto OnExecutor(Action action) {
    return PostAndWait(*executor, std::move(action));
  }
};

absl::Status Server::Parts::OpenStore() {
  if (options.store.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<ModelStore>> opened =
      ModelStore::Open(PosixFileSystem(), options.store, StoreAccess::kReadWrite);
  if (!opened.ok()) {
    return Annotate(opened.status(),
                    absl::StrCat("--store ", options.store,
                                 " cannot be used, name another or leave it out"));
  }
  store = *std::move(opened);
  for (const std::string& line : store->open_report()) {
    log.Write(LogLevel::kWarn, "store", {{"message", line}});
  }
  return absl::OkStatus();
}

absl::Status Server::Parts::MakeCompute() {
  PW_ASSIGN_OR_RETURN(gemm, CpuGemm::Create(options.threads, *budget));
  compute = MakeCpuLinearCompute({gemm.get(), &VectorQuantizer(), budget.get()});
  return absl::OkStatus();
}

absl::Status Server::Parts::MakeLogic() {
  CatalogOptions catalog_options;
  catalog_options.limits = options.catalog;
  PW_ASSIGN_OR_RETURN(catalog_options.source_roots, ResolveRoots(options.roots));
  catalog_options.device.name = "cpu";
  catalog_options.device.formats.assign(HostableFormats().begin(), HostableFormats().end());
  catalog_options.on_state_change = [this](const std::string& name,
                                           std::optional<ModelState> state) {
    if (health) health->OnModel(name, state);
  };

  executor.emplace();
  runner.emplace(*executor);
  linear.emplace(*compute, *runner, budget);
  CatalogResources catalog_resources;
  catalog_resources.executor = &*executor;
  catalog_resources.clock = &SystemClock();
  catalog_resources.runner = &*runner;
  catalog_resources.file_system = &PosixFileSystem();
  catalog_resources.budget = budget;
  catalog_resources.quantizer = &VectorQuantizer();
  catalog_resources.store = store.get();
  catalog.emplace(std::move(catalog_resources), std::move(catalog_options));
  SessionResources session_resources;
  session_resources.executor = &*executor;
  session_resources.clock = &SystemClock();
  session_resources.runner = &*runner;
  session_resources.models = &*catalog;
  session_resources.compute = &*linear;
  session_resources.budget = budget;
  sessions.emplace(std::move(session_resources), options.session, RandomBits);
  return absl::OkStatus();
}

absl::Status Server::Parts::MakeServices() {
  std::optional<AuthToken> token;
  if (options.has_tcp()) {
    PW_ASSIGN_OR_RETURN(token, AuthToken::LoadOrCreate(options.token_file));
  }
  gate.emplace(std::move(token), geteuid());
  const RpcEnvironment environment{&*executor, &SystemClock(), &*gate, &log, &open_calls};
  models_service.emplace(environment, *catalog, options.session.chunk_bytes_max);
  sessions_service.emplace(environment, *sessions);
  v1::ServerConfig config;
  for (const auto& [name, value] : options.Settings()) (*config.mutable_settings())[name] = value;
  server_service.emplace(environment,
                         DescribeCapabilities(options, ProbeCuda(), CpuMultipliesBf16()),
                         std::move(config), budget);
  return absl::OkStatus();
}

absl::Status Server::Parts::Listen() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kReceiveBytesMax);
  builder.SetResourceQuota(grpc::ResourceQuota("planewise").Resize(kTransportBytes));
  // A second daemon must not share the port by accident.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  for (ListenAddress& address : options.listen) {
    if (address.kind == ListenAddress::Kind::kUnix) {
      PW_RETURN_IF_ERROR(PrepareSocketDirectory(address.path));
    }
    builder.AddListeningPort(address.ToString(), grpc::InsecureServerCredentials(),
                             &address.port);
  }
  builder.RegisterService(&*models_service);
  builder.RegisterService(&*sessions_service);
  builder.RegisterService(&*server_service);
  grpc_server = builder.BuildAndStart();
  for (const ListenAddress& address : options.listen) {
    if (grpc_server != nullptr && address.port != 0) continue;
    return Error(Reason::kUnavailable,
                 absl::StrCat("cannot listen on ", address.ToString(), "; is it in use?"));
  }
  for (const ListenAddress& address : options.listen) {
    if (address.kind == ListenAddress::Kind::kUnix) {
      chmod(address.path.c_str(), S_IRUSR | S_IWUSR);
    } else if (!options.port_file.empty()) {
      PW_RETURN_IF_ERROR(WritePortFile(options.port_file, address.port));
    }
  }
  return absl::OkStatus();
}

void Server::Parts::LoadStored() {
  const auto loaded = std::make_shared<std::promise<void>>();
  std::future<void> all_loaded = loaded->get_future();
  executor->Post([this, loaded] {
    health.emplace(*grpc_server->GetHealthCheckService());
    catalog->LoadStored([this, loaded](absl::StatusOr<std::vector<std::string>> lines) {
      if (lines.ok()) {
        for (const std::string& line : *lines) {
          log.Write(LogLevel::kInfo, "load stored", {{"message", line}});
        }
      } else {
        log.Write(LogLevel::kError, "load stored",
                  {{"message", std::string(lines.status().message())}});
      }
      model_count = catalog->List("", options.catalog.models_max).size();
      loaded->set_value();
    });
  });
  all_loaded.wait();
}

void Server::Parts::Enter(ServingPhase phase) {
  gate->Enter(phase);
  OnExecutor([&] { health->OnPhase(phase); });
}

bool Server::Parts::Busy() {
  return open_calls > 0 || OnExecutor([this] { return sessions->busy(); });
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options, JsonLog& log) {
  std::unique_ptr<Server> server(new Server(std::make_unique<Parts>(options, log)));
  Parts& parts = *server->parts_;
  PW_RETURN_IF_ERROR(parts.OpenStore());
  PW_RETURN_IF_ERROR(parts.MakeCompute());
  PW_RETURN_IF_ERROR(parts.MakeLogic());
  PW_RETURN_IF_ERROR(parts.MakeServices());
  PW_RETURN_IF_ERROR(parts.Listen());
  parts.LoadStored();
  parts.Enter(ServingPhase::kServing);
  log.Write(LogLevel::kInfo, "ready", {{"message", server->ReadyLine()}});
  return server;
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() {
  Parts& parts = *parts_;
  if (parts.grpc_server != nullptr) {
    parts.grpc_server->Shutdown(std::chrono::system_clock::now());
    parts.grpc_server->Wait();
  }
  if (!parts.executor) return;
  // Work that runs ends, what it posts still finds its owner, and the next step
  // that this may ask for still finds the runner, which drops it.
  if (parts.runner) parts.runner->Stop();
  parts.OnExecutor([&] {
    parts.sessions.reset();
    parts.catalog.reset();
  });
  parts.executor.reset();
}

void Server::Drain() {
  Parts& parts = *parts_;
  parts.log.Write(LogLevel::kInfo, "drain",
                  {{"graceMs", absl::ToDoubleMilliseconds(parts.options.drain_grace)}});
  parts.Enter(ServingPhase::kDraining);
  parts.OnExecutor([&] {
    parts.catalog->BeginDrain();
    parts.sessions->BeginDrain();
  });
  const absl::Time deadline = SystemClock().Now() + parts.options.drain_grace;
  while (parts.Busy() && SystemClock().Now() < deadline) {
    absl::SleepFor(kDrainPollInterval);
  }
  parts.OnExecutor([&] { parts.sessions->Shutdown(); });
  parts.grpc_server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  parts.grpc_server->Wait();
  parts.log.Write(LogLevel::kInfo, "drained", {});
}

std::string Server::Addresses() const {
  return absl::StrJoin(parts_->options.listen, ", ",
                       [](std::string* out, const ListenAddress& address) {
                         absl::StrAppend(out, address.ToString());
                       });
}

int Server::tcp_port() const {
  for (const ListenAddress& address : parts_->options.listen) {
    if (address.kind == ListenAddress::Kind::kTcp) return address.port;
  }
  return 0;
}

std::string Server::ReadyLine() const {
  const std::string& store = parts_->options.store;
  return absl::StrCat("planewised ready: listening on ", Addresses(), ", ", parts_->model_count,
                      parts_->model_count == 1 ? " model" : " models", ", ",
                      store.empty() ? "no store" : absl::StrCat("store ", store));
}

const MemoryBudget& Server::budget() const { return *parts_->budget; }

}  // namespace planewise

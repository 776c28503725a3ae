import type { DescMethod } from "@bufbuild/protobuf";

const retryPolicy = {
  maxAttempts: 5,
  initialBackoff: "0.2s",
  maxBackoff: "2s",
  backoffMultiplier: 2,
  retryableStatusCodes: ["UNAVAILABLE"],
};

interface MethodConfig {
  name: { service?: string; method?: string }[];
  waitForReady: boolean;
  timeout?: string;
  retryPolicy: typeof retryPolicy;
}

interface ServiceConfig {
  methodConfig: MethodConfig[];
  retryThrottling: { maxTokens: number; tokenRatio: number };
}

/** The service config of all clients. A test compares it with `clients/service_config.json`. */
export const SERVICE_CONFIG: ServiceConfig = {
  methodConfig: [
    {
      name: [
        { service: "rummikub.v1.GameService", method: "WatchGame" },
        { service: "rummikub.v1.GameService", method: "WatchOwnGames" },
        { service: "rummikub.v1.ValidationService", method: "StreamValidateTurns" },
      ],
      waitForReady: true,
      retryPolicy,
    },
    {
      name: [{ service: "rummikub.v1.AnalysisService" }, { service: "rummikub.v1.RecordService" }],
      waitForReady: true,
      timeout: "70s",
      retryPolicy,
    },
    { name: [{}], waitForReady: true, timeout: "10s", retryPolicy },
  ],
  retryThrottling: { maxTokens: 500, tokenRatio: 0.1 },
};

/** Returns the milliseconds of a duration such as `0.2s`. */
function milliseconds(duration: string): number {
  return parseFloat(duration) * 1000;
}

/** Returns the default deadline of a method in milliseconds; undefined if it has none. */
export function defaultTimeoutMs(method: DescMethod): number | undefined {
  const config = SERVICE_CONFIG.methodConfig.find(({ name }) =>
    name.some(
      (name) =>
        (name.service ?? method.parent.typeName) === method.parent.typeName &&
        (name.method ?? method.name) === method.name,
    ),
  );
  return config?.timeout === undefined ? undefined : milliseconds(config.timeout);
}

/** The retry policy in numbers. */
export const RETRY = {
  maxAttempts: retryPolicy.maxAttempts,
  initialBackoffMs: milliseconds(retryPolicy.initialBackoff),
  maxBackoffMs: milliseconds(retryPolicy.maxBackoff),
  backoffMultiplier: retryPolicy.backoffMultiplier,
  ...SERVICE_CONFIG.retryThrottling,
};

/** Coroutines and flows for the client of the Rummikub rules service. */
package rummikub.client.kotlin

import io.grpc.ChannelCredentials
import io.grpc.InsecureChannelCredentials
import io.grpc.StatusException
import io.grpc.StatusRuntimeException
import kotlin.jvm.optionals.getOrNull
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.mapNotNull
import kotlinx.coroutines.future.await
import rummikub.client.Refusals
import rummikub.client.Watch
import rummikub.client.WatchOptions
import rummikub.v1.AnalysisServiceGrpcKt.AnalysisServiceCoroutineStub
import rummikub.v1.ChallengeServiceGrpcKt.ChallengeServiceCoroutineStub
import rummikub.v1.Game
import rummikub.v1.GameServiceGrpcKt.GameServiceCoroutineStub
import rummikub.v1.PuzzleServiceGrpcKt.PuzzleServiceCoroutineStub
import rummikub.v1.RecordServiceGrpcKt.RecordServiceCoroutineStub
import rummikub.v1.Refusal
import rummikub.v1.TurnServiceGrpcKt.TurnServiceCoroutineStub
import rummikub.v1.ValidationServiceGrpcKt.ValidationServiceCoroutineStub
import rummikub.v1.WatchContent
import rummikub.v1.WatchGameRequest
import rummikub.v1.WatchGameResponse

/**
 * A connection to the service, as a spectator or, after [seated], as a seat or the host of a game.
 *
 * A request with an empty `request_id` is sent with a new one. A failed call throws a [StatusException], whose
 * message says what to do; [refusal] has its reason.
 *
 * @property java The same connection for blocking calls and futures.
 */
class Rummikub(val java: rummikub.client.Rummikub) : AutoCloseable by java {
    /** Connects to a target (`host:port`), without TLS unless there are credentials, such as `TlsChannelCredentials.create()`. */
    constructor(target: String, credentials: ChannelCredentials = InsecureChannelCredentials.create()) :
        this(rummikub.client.Rummikub.connect(target, credentials))

    /** Games: create, join, start, read. */
    val games = GameServiceCoroutineStub(java.channel())

    /** Turns and rounds. */
    val turns = TurnServiceCoroutineStub(java.channel())

    /** The rules without a game. */
    val validation = ValidationServiceCoroutineStub(java.channel())

    /** The analysis. */
    val analysis = AnalysisServiceCoroutineStub(java.channel())

    /** Records, and texts of positions. */
    val records = RecordServiceCoroutineStub(java.channel())

    /** Challenges between players with join tickets. */
    val challenges = ChallengeServiceCoroutineStub(java.channel())
    /** Puzzles. */
    val puzzles = PuzzleServiceCoroutineStub(java.channel())

    /** Returns the same connection with a seat's token, or the host token, on every call. */
    fun seated(token: String) = Rummikub(java.seated(token))

    /**
     * Returns the updates of a game as a cold flow that reconnects and resumes by itself. It completes with the game, and
     * throws a [StatusException] for a refusal, or when the patience is over. Each collector has a stream of
     * its own, which ends when the collection does.
     */
    fun watch(request: WatchGameRequest, options: WatchOptions = WatchOptions.DEFAULT): Flow<WatchGameResponse> = flow {
        java.watch(request, options).use { watch ->
            while (true) {
                emit(next(watch) ?: break)
            }
        }
    }

    /** Returns a game as it is now and after every change; for the rest, the flow is that of [watch]. */
    fun watchGames(gameId: String): Flow<Game> {
        val request = WatchGameRequest.newBuilder().setGameId(gameId).setContent(WatchContent.WATCH_CONTENT_GAMES)
        return watch(request.build()).mapNotNull { update ->
            if (update.hasSnapshot()) update.snapshot else if (update.hasGame()) update.game else null
        }
    }

    private suspend fun next(watch: Watch): WatchGameResponse? =
        try {
            watch.next().await().getOrNull()
        } catch (error: StatusRuntimeException) {
            throw StatusException(error.status.withCause(error), error.trailers)
        }
}

/** The reason of a refusal, its metadata, and the violations of an illegal turn; empty if the service did not answer. */
val Throwable.refusal: Refusal
    get() = Refusals.of(this)

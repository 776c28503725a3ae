package example

import kotlinx.coroutines.flow.mapNotNull
import kotlinx.coroutines.runBlocking
import rummikub.client.Tiles
import rummikub.client.kotlin.Rummikub
import rummikub.client.kotlin.view
import rummikub.v1.*

fun main(arguments: Array<String>) = runBlocking {
    Rummikub(arguments.firstOrNull() ?: "127.0.0.1:50051").use { lobby ->
        val rules = Ruleset.newBuilder().setMatchEnd(MatchEnd.MATCH_END_FIXED_ROUNDS).setMatchRounds(2)
        val created = lobby.games.createGame(CreateGameRequest.newBuilder().setRuleset(rules).build())
        val id = created.game.gameId
        val joining = JoinGameRequest.newBuilder().setGameId(id).setName("Ann").build()
        val joined = lobby.seated(created.hostToken).games.joinGame(joining)
        val ann = lobby.seated(joined.seatToken) // store the tokens: they are returned once
        ann.games.addBot(AddBotRequest.newBuilder().setGameId(id).setLevel(BotLevel.BOT_LEVEL_EASY).build())
        ann.games.startGame(StartGameRequest.newBuilder().setGameId(id).build())
        play(ann, id)
    }
}

suspend fun play(ann: Rummikub, id: String) {
    val watching = WatchGameRequest.newBuilder().setGameId(id).setContent(WatchContent.WATCH_CONTENT_GAMES)
    ann.watch(watching.build()).mapNotNull { it.view }.collect { game ->
        println("${Tiles.tableText(game.tableList)} rack: ${Tiles.text(game.rackList)}")
        if (game.hasTurn() && game.turn.seat == game.seat) {
            val found = ann.analysis.suggestTurn(SuggestTurnRequest.newBuilder().setGameId(id).build())
            ann.turns.playTurn(found.turn)
        } else if (game.state == GameState.GAME_STATE_ROUND_OVER) {
            ann.games.startNextRound(StartNextRoundRequest.newBuilder().setGameId(id).build())
        }
    }
}

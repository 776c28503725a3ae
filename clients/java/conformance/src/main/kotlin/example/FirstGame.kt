package example

import kotlinx.coroutines.runBlocking
import rummikub.client.Tiles
import rummikub.client.kotlin.Rummikub
import rummikub.v1.*

fun main(arguments: Array<String>) = runBlocking {
    Rummikub(arguments.getOrElse(0) { "127.0.0.1:50051" }).use { lobby ->
        val preset = Preset.valueOf(arguments.getOrElse(1) { "PRESET_SABRA" })
        val rules = Ruleset.newBuilder()
        rules.meldingBuilder.preset = preset
        rules.meldingBuilder.gameEndBuilder.setMatchEnd(MatchEnd.MATCH_END_FIXED_ROUNDS).setMatchRounds(2)
        val created = lobby.games.createGame(CreateGameRequest.newBuilder().setRuleset(rules).build())
        val id = created.game.gameId
        val joining = JoinGameRequest.newBuilder().setGameId(id).setName("Ann").build()
        val joined = lobby.seated(created.hostToken).games.joinGame(joining)
        val ann = lobby.seated(joined.seatToken) // store the tokens: they are returned once
        repeat(created.game.ruleset.melding.deal.playersMin - 1) {
            ann.games.addBot(AddBotRequest.newBuilder().setGameId(id).setLevel(BotLevel.BOT_LEVEL_EASY).build())
        }
        ann.games.startGame(StartGameRequest.newBuilder().setGameId(id).build())
        play(ann, id)
    }
}

suspend fun play(ann: Rummikub, id: String) {
    ann.watchGames(id).collect { game ->
        println("${Tiles.tableText(game.table)} rack: ${Tiles.text(game.rackList)}")
        if (game.hasTurn() && game.turn.seat == game.seat) {
            val found = ann.analysis.suggestTurn(SuggestTurnRequest.newBuilder().setGameId(id).build())
            ann.turns.playTurn(found.turn)
        } else if (game.state == GameState.GAME_STATE_ROUND_OVER) {
            ann.turns.startNextRound(StartNextRoundRequest.newBuilder().setGameId(id).build())
        }
    }
}

# Completion of vdoctl for PowerShell: vdoctl completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName vdoctl -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $line = $commandAst.Extent.Text.PadRight($cursorPosition).Substring(0, $cursorPosition)
    $words = @($line -split '\s+' | Select-Object -Skip 1)
    $program = @($line -split '\s+')[0]
    $answer = @(& $program __complete @words 2>$null)
    $lead = if ($wordToComplete -match '^(--[^=]*=)') { $Matches[1] } else { '' }
    $answer | Where-Object { $_ -notmatch '^:' } | ForEach-Object {
        $value, $about = $_ -split "`t", 2
        if (-not $about) { $about = $value }
        [System.Management.Automation.CompletionResult]::new("$lead$value", $value, 'ParameterValue', $about)
    }
}
